// Package hostile has an API server that attacks its clients, as a tenant's target might.
//
// Without an attack it has the namespace kube-system, ConfigMaps in memory and their schema, which
// is enough to install a package. An [Attack] answers single requests in its own way.
package hostile
