// Package webhooks distinguishes the answers of admission webhooks from those of the API server.
package webhooks
