// Package harness is what the end-to-end tests share: a sandbox with Lockstep's
// config installed, a manager process that runs under the service account and
// the RBAC of config (never as admin), packages made and pushed on the fly, and
// waiting on conditions.
//
//	env := harness.New(t)
//	env.StartManager(t)
//	image := env.Push(t, "shop:v1", harness.Phased("shop", 10, 20))
//	env.Create(t, harness.Package("default", "shop", image))
//	env.WaitAvailable(t, "default", "shop")
package harness
