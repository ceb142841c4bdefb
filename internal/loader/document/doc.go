// Package document reads YAML files of a package. It splits them into documents, bounds the cost of
// each before and during parsing, and converts them to JSON values.
//
// Scalars have the same meaning as for kubectl: YAML 1.1 booleans such as yes and on, octals, merge
// keys, keys that become text. A duplicate key, an unknown tag, NaN and invalid UTF-8 are problems
// with a line.
package document
