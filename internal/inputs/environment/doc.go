// Package environment detects what packages are rendered for: the version of the API
// server, and what OpenShift and HyperShift publish about the cluster.
//
//	/version, livestate ─► served kinds ─► one watch each ─► PackageEnvironment ─► Changed
//
// Only APIs that are served are watched, and single objects by their name. Of the objects
// only what packages see is kept. Nothing is rendered before everything that is served was
// read: after a restart, a package must not be rendered for half of it.
//
// Of HostedClusters and of their control planes there is one watch each, which HostedClusterPackages are
// reconciled by, too.
package environment
