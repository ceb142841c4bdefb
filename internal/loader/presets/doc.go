// Package presets has what follows from the kind of an object alone: the phase that it belongs into, and the probes that
// tell whether it is ready. Nothing in a phase waits for what a later phase brings. Probes are those of kstatus.
package presets
