// Package intern has equal values use the same memory: the template of a deployment,
// its set and the revision that is loaded of it hold the same objects, each decoded
// from an answer of its own, and a thousand sets hold the same few texts.
//
// What it returns belongs to everyone who asked for an equal value: it must never be
// changed. Bytes are known for as long as anyone holds them, and not through this
// package; Texts are few and short, and bounded by limits.SharedTexts.
package intern
