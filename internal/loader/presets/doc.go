// Package presets has the phase and the probes that follow from the kind of an object alone.
// Nothing in a phase waits for what a later phase brings. Probes are those of kstatus.
package presets
