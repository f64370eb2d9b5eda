"""Amazon product reviews of many domains, positive and negative."""

from attnlib.datasets.base import Dataset, files_at, files_by_hand

_RAW = "https://raw.githubusercontent.com/ccsasuke/man/b57b4c14340db1ca7bffb5d9737b7c2601dc8df2/data/fdu-mtl/"
_ACL = {
    "books": {
        "negative.review": "562c58de7f739c9af2d62377ea2253ff73e89f69c84a332088f341cdb0e09660",
        "positive.review": "24323836c9ce9601ac43b7ab45fff1ac9b82efda02f1269bf3e8cdc4b019a99a",
    },
    "dvd": {
        "negative.review": "de1b539d29dc7edfbabf0ca4b1bce4e296d486533f3730012e4b49e36e762fa3",
        "positive.review": "fcf5207f79aa8af4910b5793c15fe90f25eb39501f9f4bdbd8f60a817224e28d",
    },
    "electronics": {
        "negative.review": "571287120d63e289753231804f33169b2ec4348ca6d24fa0d781a3a08e6376ff",
        "positive.review": "98daefad1056ec8d98fe910bdb50ae282695b9c2b89c2bc1513b9d2203b38a11",
    },
    "kitchen_&_housewares": {
        "negative.review": "0ad1fa1f4539b47933fcef01be674b1246d1dc01403197c1439004cbaf4b543e",
        "positive.review": "90ebec2b5a6ac040e16836c32b8efbd92ce98804b916c6367f7ade3b8d536798",
    },
}
_FDU_MTL = {
    "apparel.task.test": "8e591ec14fa0e3d26837b9a40c99d3a93b49f47e7a3fbe4d0afe1b4e1dd45439",
    "apparel.task.train": "589702d71eded8ca23907acf6e434f203c8c6feb09737106f77f03707641ffc3",
    "baby.task.test": "8763bb4b8bbf83b93b6aab03706719fc742fb7d89830a6bd95ea1c2490ea58f7",
    "baby.task.train": "0d884186f3aef0e12dafac0a875887fe631de0df992b15158ab177763882bf57",
    "books.task.test": "b451ac03e48b599bf35dd1a450158389e1ac9018950e95c631053ac14a5b10ad",
    "books.task.train": "40c4c5971165b9e0a509a60472c3bf06c8e1430d4944833141eb3c34d986b65e",
    "camera_photo.task.test": "3fdea0837d6c41f04720dce8d2e690bbdeb5019ecac749f8f38472ac1dcfa439",
    "camera_photo.task.train": "425bf93c303b2f38d2f53649508ea9e55d0114679ecb00fda5c2c15ebbe9e708",
    "dvd.task.test": "762e6e030892375eda4f211be58624a3bb6a07c966901c79b803837d21fca4b5",
    "dvd.task.train": "47334240d9cef76ac5f15a10f9082c3d2c6e7f9a9bb0478a3800ede2a0300771",
    "electronics.task.test": "a4d2e7d2a5b8b501a6611e45e1b241aa0d601388b79265cfc94c203cb52f8b8c",
    "electronics.task.train": "bb2f28c4a20e3d075dd71ff049970bd445f4d47bcc8404a68eb03850413a8da7",
    "health_personal_care.task.test": "07f289177da7ebe71f1ac2ee3d5a25f190913e2a11116f0fb55862e01b60a331",
    "health_personal_care.task.train": "384f1ec3d76a2f755844cac4bd7725b86bc79910dae60fc33f133e380f827b4a",
    "kitchen_housewares.task.test": "86bcc015f7cfa773880951830ac6161dc2b8717e8a69773ca11a5bd6529b2020",
    "kitchen_housewares.task.train": "df5c9e8473b084a6b252dfbb5e074adcaacb9638a882fee3f20d62d747f45d6f",
    "magazines.task.test": "620ecd0ccd7b7f73483b8cdcef5ca07dff92e2d57c9cf4b6e9f7d669a681f6c3",
    "magazines.task.train": "d4805a9f094c1c7befa64bc42ea846261b1290a2fd120c46f45c9e89faf782ae",
    "music.task.test": "54a157c56930b9e587b6b955fe4b2e3258d2f70d0d58ccbbf40a4bfd846ee204",
    "music.task.train": "f0b41243475c16391a02e91d87710ed87d68927d4d77f526a3d2369a98ac572e",
    "software.task.test": "3b92617a5b3ad618b7aaab98546d49c2a69f46dedbceb4ec14dee1cbb4ff02d3",
    "software.task.train": "a050cb3ea22b94b21ce70acff3a23eabd1f39307bd862d6c0cc23170eb4830f4",
    "sports_outdoors.task.test": "77394d7c91fbc69cc16bfaf79f1f945999fe2d8e0fc536f1f79d17089e611f49",
    "sports_outdoors.task.train": "062ac0e2fb04a81c1f06f15b219634810a323a2ee187750e2f479030ebad0326",
    "toys_games.task.test": "6ee304a53f25697ee96bcb60fe07cc36d282ef343c3e0f8ae09df669ec39b116",
    "toys_games.task.train": "bb8404d3b48ab02bca2a75bb1e245297aac36b8143a81549f6485b4c2d24dd10",
    "video.task.test": "8de7a49ee3001409c9049b1f52949d78c7875cb92e031b43f5cef681dfd341e4",
    "video.task.train": "2867b3e5fffc44132aa61ff49dd608eeacc503b2c9c2133680f0cb4a7a258f3e",
}

DATASET = Dataset(
    name="amazon",
    title="Amazon reviews: FDU-MTL (Liu et al. 2017) and the ACL domains (Blitzer et al. 2007)",
    folder="amazon_multi_domain",
    files=(
        *files_at(_RAW, _FDU_MTL, under="fdu-mtl/"),
        *(
            file
            for name, sums in _ACL.items()
            for file in files_by_hand(sums, under=f"sorted_data_acl/{name}/")
        ),
    ),
    home="https://www.cs.jhu.edu/~mdredze/datasets/sentiment/",
    licence="none stated; research use, cite the ACL 2007 paper",
    redistribution="unclear",
    note=(
        "14 domains prepared for FDU-MTL (tab-separated, tokenised; dvd.task.train is not valid "
        "UTF-8; 505 texts are in both train and test) and the original 4 domains (Latin-1). The "
        "25 domains that Snell et al. used are in unprocessed.tar.gz on the home page."
    ),
)
