// Package docs holds no code. Its tests hold the documents to the code: reasons,
// metrics, flags, links, dependencies and the import table.
package docs
