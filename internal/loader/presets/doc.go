// Package presets has the phase and the probes that follow from the kind of an object alone. No
// object has to wait for an object of a later phase. The probes are kstatus's.
package presets
