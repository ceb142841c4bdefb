// Package harness provides the end-to-end tests with a sandbox that has Lockstep's config
// installed, with a manager process that uses the service account and the RBAC of config
// (never an administrator's), with packages that are built and pushed on the fly, and with
// functions that wait for conditions.
//
//	env := harness.New(t)
//	env.StartManager(t)
//	image := env.Push(t, "shop:v1", harness.Phased("shop", 10, 20))
//	env.Create(t, harness.Package("default", "shop", image))
//	env.WaitAvailable(t, "default", "shop")
package harness
