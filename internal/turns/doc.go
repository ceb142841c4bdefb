// Package turns knows what a controller has to do at present: others put requests into
// its queue, and ask how much is under way, to do later what can wait.
package turns
