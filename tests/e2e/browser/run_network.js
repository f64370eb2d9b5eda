// What a network of the page makes of sentences; of the first twenty the nine terms as well.
([name, asked]) => Instruments.network(name).then(network => {
    return asked.map(([source, read], n) => {
        const {terms, attention, probabilities} = network.run(source, {read});
        return {attention, probabilities, terms: n < 20 ? terms : null};
    });
})
