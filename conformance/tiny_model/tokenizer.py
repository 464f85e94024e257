"""A byte-level tokenizer: one token a byte, no merges, one end-of-text token.

Written in the format of Hugging Face's ``tokenizers`` so that vLLM and transformers load it as a fast tokenizer.
"""

from __future__ import annotations

from conformance.tiny_model.architecture import END_OF_TEXT

END_OF_TEXT_TOKEN = "<|endoftext|>"


def byte_alphabet() -> list[str]:
    """The printable character that stands for each byte value, index = byte, as in GPT-2's byte-level BPE."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    characters = {value: chr(value) for value in printable}
    others = (value for value in range(256) if value not in characters)
    characters.update({value: chr(0x100 + position) for position, value in enumerate(others)})
    return [characters[value] for value in range(256)]


def tokenizer() -> dict[str, object]:
    """``tokenizer.json``."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    vocabulary = {character: value for value, character in enumerate(byte_alphabet())}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": END_OF_TEXT,
                "content": END_OF_TEXT_TOKEN,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {**vocabulary, END_OF_TEXT_TOKEN: END_OF_TEXT},
            "merges": [],
        },
    }


def tokenizer_config() -> dict[str, object]:
    """``tokenizer_config.json``."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT_TOKEN,
        "eos_token": END_OF_TEXT_TOKEN,
        "pad_token": END_OF_TEXT_TOKEN,
        "model_max_length": 512,
        "clean_up_tokenization_spaces": False,
    }
