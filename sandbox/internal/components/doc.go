// Package components holds the programs of a sandbox, so that one binary can be all of them.
//
// Each program is the upstream one, and starts like its own main function. The caller sets os.Args
// to the program's own name and arguments and calls [Run], which takes over the process: programs
// install their own signal handlers and flags, so a process runs exactly one of them, once.
//
// A component that finds [program.ParentFDEnv] set ends when the supervisor at the other end of
// that pipe has ended, in whatever way; see [WatchParent].
package components
