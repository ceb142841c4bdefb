// Package operate tests how the engine is released and installed, with tools that ./task
// test does not need: Helm, and those of releases. It is a module of its own so that the
// project's has no part of that; run it by ./task test:operate.
package operate
