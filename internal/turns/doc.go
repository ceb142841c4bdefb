// Package turns lets work wait for other work. A Queue knows what a controller has to
// do at present: others put requests into it, and ask how much is under way, to do
// later what can wait. Levels share processors: what takes long does not hold up what
// does not.
package turns
