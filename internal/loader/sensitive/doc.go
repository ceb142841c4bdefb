// Package sensitive finds values of Secrets in other text, and redacts messages.
//
// It finds a value of at least limits.SensitiveLength bytes verbatim, trimmed, escaped, indented,
// wrapped, or in hex, base64 or base64 of base64 at every alignment. It does not find a value that a
// template splits, hashes or writes in another case. In messages, it replaces every part of that
// length, because libraries truncate quoted values. It replaces shorter values if they are a word.
//
// Values are never part of an error. A nil *Values finds nothing.
package sensitive
