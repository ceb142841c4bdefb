// Package revisions decides about the revisions of a deployment: which one is
// current, whether a new one is due, which are archived, paused or collected,
// and what the deployment's conditions say.
//
// Everything is a pure function of what the caller gathered.
package revisions
