// Package revisions decides about the revisions of a deployment: which one is
// current, whether a new one is due, which are archived, paused or collected,
// and whether the deployment is available. All functions are pure.
package revisions
