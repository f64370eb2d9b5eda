// Sphinx puts this into language_data.js. A word whose stem is a stop word keeps its letters, as it does in the index: the
// stem of AED is "a". Weights are Sphinx's own, but that a title counts for more than a word in the text.
{
  const Plain = Stemmer;
  const stops = new Set(stopwords);
  Stemmer = function () {
    const plain = new Plain();
    this.stemWord = word => {
      const stem = plain.stemWord(word);
      return stops.has(stem) && !stops.has(word) ? word : stem;
    };
  };
}
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 30,
  partialTitle: 10,
  term: 5,
  partialTerm: 2,
};
