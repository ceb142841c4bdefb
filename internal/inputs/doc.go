// Package inputs reads the data from clusters that packages, templates and repositories depend on.
//
//	environment  the version of a cluster, and what OpenShift and HyperShift publish about it
//	imageconfigs which images are trusted, with the keys that ImageConfigs name
//	sources      Secrets, ConfigMaps and objects that specs name
//	targets      connections to other clusters, by kubeconfigs in Secrets
package inputs
