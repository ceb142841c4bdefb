// Package definitions follows the CustomResourceDefinitions that a rollout writes and the API
// server does not serve yet: the mappings of their kinds, and the losses of a changed definition.
package definitions
