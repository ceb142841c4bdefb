// Package inputs holds what packages, templates and repositories read from clusters.
//
//	environment  the version of a cluster, and what OpenShift and HyperShift publish about it
//	imageconfigs which images are trusted, with the keys that ImageConfigs name
//	sources      Secrets, ConfigMaps and objects that specs name
//	targets      connections to other clusters, by kubeconfigs in Secrets
package inputs
