// Package operate tests the release and the installation of the engine, with tools that ./task test
// does not need: Helm, and the tools for releases. It is a separate module so that these are not
// part of the project's module. Run it with ./task test:operate.
package operate
