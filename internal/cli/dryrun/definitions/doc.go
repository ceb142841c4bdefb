// Package definitions follows the CustomResourceDefinitions that a rollout writes, which the API server does not serve yet: the
// mappings of their kinds, whether resources are valid by them, and what a changed one takes away.
package definitions
