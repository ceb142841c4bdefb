// Package config admits the configuration of a Package against the structural schema in its
// manifest, as an API server admits a custom resource: defaults, validation, CEL rules. It returns
// unknown keys by path, and the caller rejects or drops them. Costs are the same as in API servers.
//
// [Compile] runs for each load, because a schema can be different in each image. Schemas and
// configurations are not trusted: [Weigh] bounds the cost of compiling a schema, and [Schema.Admit]
// the number of values and comparisons, before the libraries of Kubernetes see them.
package config
