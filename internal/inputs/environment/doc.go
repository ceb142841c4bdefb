// Package environment detects the environment that packages are rendered for: the version of the
// API server, and what OpenShift and HyperShift publish about the cluster.
//
//	/version, livestate ─► served kinds ─► one watch each ─► PackageEnvironment ─► Changed
//
// It watches only served APIs, watches single objects by name, and keeps only the parts of objects
// that packages see. No package is rendered before all served kinds have been read: after a
// restart, a package must not be rendered for half of its environment.
//
// HostedClusters and their control planes have one watch each, which HostedClusterPackages share.
package environment
