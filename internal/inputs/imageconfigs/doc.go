// Package imageconfigs makes policies from ImageConfigs and the keys and trusted roots that they
// name, and keeps the policies for the controllers. It reads keys and trusted roots only from the
// manager's namespace.
package imageconfigs
