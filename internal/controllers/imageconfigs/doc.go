// Package imageconfigs reconciles ImageConfigs, all of them in one reconcile. It reads the keys and
// trusted roots that they name, keeps the policies for the controllers of packages and
// repositories, and reports on each ImageConfig whether it is in effect. If the policies change,
// also because a key becomes valid or expires, packages and repositories are enqueued.
package imageconfigs
