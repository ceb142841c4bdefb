// Package desired is the Package that a user wants: the version offered by repositories, values,
// dependencies and target, as the flags of several commands set them, and the object that is
// created or changed accordingly.
//
//	flags ─► Chooser ─► ValuesCheck ─► Package.Install ─► Applied.Follow
//
// Versions and dependencies are decided as the manager decides them. All checks precede the first
// write, and objects written for a refused package are deleted.
package desired
