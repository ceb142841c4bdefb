// Package desired is the Package that a user wants: which version of what repositories offer, values, dependencies and
// target, as flags of several commands say it, and the object that is created or changed to it.
//
//	flags ─► Chooser ─► ValuesCheck ─► Package.Install ─► Applied.Follow
//
// Versions and dependencies are decided as the manager decides them. Nothing is written before
// all of it was checked, and objects written for a package that is refused are deleted.
package desired
