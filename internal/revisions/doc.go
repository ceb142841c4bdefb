// Package revisions decides about the revisions of a deployment: which one is current, whether to
// make a new one, which ones to archive, pause or collect, and whether the deployment is available.
// All functions are pure.
package revisions
