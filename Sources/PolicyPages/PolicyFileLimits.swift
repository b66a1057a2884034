/// How much of a folder is read as a policy bundle. Counted before anything is built from it, so that
/// no folder can make the gateway run out of memory or stack.
package enum PolicyFileLimits {
    /// One page. The longest of ours, all countries with their reasons, takes an eighth.
    package static let fileByteCountMax = 256 * 1024
    /// The cover page and the pages of `messages/`, which have a line or more for every type: room for
    /// 10,000 types with their words.
    package static let listingByteCountMax = 4 * 1024 * 1024
    /// All pages together: 10,000 types of 1 KiB six times over.
    package static let bundleByteCountMax = 64 * 1024 * 1024
    package static let fileCountMax = 20_000
    /// Lists and mappings inside one another in one page.
    package static let depthMax = 16
    /// Folders inside one another; the format itself needs one.
    package static let folderDepthMax = 4
    /// Bytes of a path relative to the bundle, a file name's bound on Linux (`NAME_MAX`).
    package static let pathByteCountMax = 255
    /// The one page of every bundle that names it.
    package static let coverPage = "bundle.yaml"

    package static func byteCountMax(of path: String) -> Int {
        path == coverPage || path.hasPrefix("messages/")
            ? listingByteCountMax : fileByteCountMax
    }

    /// Problems of one page that are told at once; a page with more was not meant to be one.
    static let diagnosticCountMax = 100

    /// The archived form of a bundle. JSON may spell a byte of text as six (`\u001f`), though no text of
    /// ours has one that needs it.
    package static let archiveByteCountMax = 2 * bundleByteCountMax
}
