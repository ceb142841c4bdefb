// Package apply sends single writes of managed objects to an API server and
// classifies the response.
//
// A Writer belongs to one configuration, one cluster, and one identity: the user of the
// configuration, or an impersonated one. It neither retries nor limits its rate. Both are the job
// of the engine, which has to read the object again before it repeats a write. Every write but a
// POST, which can only create, carries a guard in its body or options: the caller puts metadata.uid
// and metadata.resourceVersion (or the resourceVersion AbsentVersion, for an object that must not
// exist) into the body of an apply, Delete takes both as preconditions, and a JSON patch starts
// with tests on them.
//
// Classify maps an error to the engine's reaction.
//
// Limits: a response is at most limits.ResponseBytes, a request takes at most
// limits.WriteTimeout.
package apply
