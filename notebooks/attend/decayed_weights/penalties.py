"""Which weights the penalty is on; without torch, so that a notebook that draws imports it at no cost."""

PENALISED_ALONE = {
    "decoder_recurrence": "the decoder's recurrent weights",
    "encoder_recurrence": "the encoder's recurrent weights",
    "decoder_layer": "the decoder's layer: recurrent weights, input weights and biases",
    "others": "all weights but the recurrent ones",
}
PENALTIES = {"nothing": "no weight", **PENALISED_ALONE, "everything": "all weights"}
