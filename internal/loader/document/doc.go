// Package document reads YAML files of a package: it splits them into documents, bounds the cost of each before and
// while it is parsed, and converts them to the values of JSON.
//
// Scalars mean what they mean to kubectl: YAML 1.1 booleans such as yes and on, octals, merge keys, keys that become
// text. A duplicate key, an unknown tag, NaN and invalid UTF-8 are problems with a line.
package document
