// Package components holds the programs that a sandbox is made of, so that one
// binary can be all of them.
//
// Each program is the upstream one, started as its own main function starts it.
// The caller sets os.Args to the program's own name and arguments and calls
// [Run], which takes the process over: programs install signal handlers and
// flags of their own, so a process runs exactly one of them, once.
//
// A component that finds [program.ParentFDEnv] set ends itself when the supervisor at
// the other end of that pipe is gone, however it died; see [WatchParent].
package components
