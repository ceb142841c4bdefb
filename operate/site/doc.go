// Package site tests the documentation as a site, which Hugo makes of the pages of docs/ by the layouts in the folder site: ./task site.
package site
