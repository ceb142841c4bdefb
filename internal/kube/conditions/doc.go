// Package conditions writes the status conditions of every kind, on top of
// apimachinery's api/meta.
//
// observedGeneration is the generation of the object that carries the condition; a
// condition of another generation does not describe the current spec.
//
// Kstatus sets Ready, Reconciling and Stalled as kstatus, Flux, Helm and kubectl
// wait read them.
//
// Messages are at most limits.MessageBytes of valid UTF-8 without control
// characters other than line breaks and tabs.
package conditions
