// Package imageconfigs reconciles ImageConfigs, all of them in one reconcile: it reads the keys and trusted roots that they name,
// keeps the policies for the controllers of packages and repositories, and says on each ImageConfig whether it can count. Where what
// they say changes, also because a key becomes valid or expires, those are enqueued.
package imageconfigs
