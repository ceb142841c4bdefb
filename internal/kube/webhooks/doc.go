// Package webhooks distinguishes the answers of admission webhooks from the API server's.
package webhooks
