// Package operate tests how the engine is released and installed, with what ./task test does not need: Helm, and tools of releases. It is a module of its own so that
// the project's has no part of that; run it by ./task test:operate.
package operate
