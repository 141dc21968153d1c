/* Texts that all tokenizers are tried with. */
TEXT("Once upon a time, there was a little girl named Lily.")
TEXT("")
TEXT(" ")
TEXT("  two  spaces\n\n\n and\ttabs \r\n")
TEXT("don't we'll I'M 12345 x86_64 3.14!?")
TEXT("na\xc3\xafve caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80\xe2\x96\x81z")
TEXT("<s>a</s> <|im_start|>user\nHi<|im_end|>\n<|endoftext|>")
TEXT("stray \xff\xfe bytes \xc3")
