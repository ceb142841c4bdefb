// Package hostile has an API server that attacks who connects to it: what a target of a tenant may answer.
//
// Without an attack it has the namespace kube-system, ConfigMaps in memory and their schema, which is enough for a package
// to be installed there. An [Attack] answers single requests in its own way.
package hostile
