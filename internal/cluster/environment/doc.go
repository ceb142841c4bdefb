// Package environment knows what packages are rendered for: the version of the
// API server, and what OpenShift and HyperShift say about the cluster.
//
//	/version, livestate ─► served kinds ─► one watch each ─► PackageEnvironment ─► Changed
//
// Only APIs that are served are watched, and single objects by their name; a
// watch begins when its CRD is established and ends when that goes. Nothing
// polls, and of the objects only what packages see is kept.
//
// Until everything that is served was read, the environment is not known, and
// nothing is rendered: a package must not be judged by half of it after a restart.
package environment
