// Package conditions reads and writes the status conditions of every kind.
//
// A condition is upserted: its lastTransitionTime changes with its status only,
// so writing the same condition again changes nothing and costs no request.
// observedGeneration is the generation of the object that carries it; a
// condition of another generation says nothing about the current spec.
//
// Kstatus sets Ready, Reconciling and Stalled as kstatus, Flux, Helm and kubectl
// wait read them.
//
// Messages are at most limits.MessageBytes of valid UTF-8 without control
// characters other than line breaks and tabs.
package conditions
