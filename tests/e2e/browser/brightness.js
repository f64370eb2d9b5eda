// How bright the text of a page is and its ground, from 0 to 255, whatever way its colours are written.
() => ['color', 'backgroundColor'].map(name => {
    const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1});
    const drawn = canvas.getContext('2d');
    const page = matchMedia('(prefers-color-scheme: dark)').matches ? '#121212' : '#fff';
    const own = getComputedStyle(document.body)[name];
    drawn.fillStyle = own === 'rgba(0, 0, 0, 0)' ? page : own;
    drawn.fillRect(0, 0, 1, 1);
    return drawn.getImageData(0, 0, 1, 1).data[0];
})
