// Package rendered prints the final objects of a loaded package: with the labels
// that the engine sets, in the order in which they are rolled out, as a list or
// as a folder with one file for each.
//
// It is pure but for the folder, which is new: nothing that exists is written
// over, and names of objects cannot lead out of it.
package rendered
