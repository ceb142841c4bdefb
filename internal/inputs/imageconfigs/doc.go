// Package imageconfigs makes policies of ImageConfigs and of the keys and trusted roots that they name, which are in the namespace of
// the manager alone, and keeps them for the controllers.
package imageconfigs
