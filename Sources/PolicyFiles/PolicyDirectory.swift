package import BundleModel
import CompliancePolicy
import Dispatch
package import GateVocabulary
import OpenSSLCrypto
import PolicyPages
import Synchronization

/// A bundle as a folder of files.
///
/// Reads every file of the folder, so that ``PolicyBundle/read(documents:)`` can hold them against the list
/// on the cover page: what is in force is what the cover page says, not what happens to lie about. Only
/// regular files inside the folder are read. `schema/` holds help for editors and `compliance.sig`, `security.sig` and
/// `legal.sig` the signatures (``PolicySignature``); none of them is part of a bundle.
package enum PolicyDirectory {
    package static let coverPage = PolicyFileLimits.coverPage
    static let editorFolder = "schema"

    /// Reads and checks the bundle in a folder.
    ///
    /// - Parameters:
    ///   - refusing: What the reader refuses on top, looking at the pages that can be read.
    ///   - caller: Added to the pages before they are checked, for a gateway in development.
    ///   - kept: What this function made of folders before, with the same `refusing`.
    /// - Throws: Every problem, sorted by file and line: of the pages that cannot be read, and of what the others
    ///   say. Only what hangs on an unreadable page is left for the next round.
    package static func readBundle(
        at path: String, refusing: (_ pages: [String: PolicyNode]) -> [PolicyDiagnostic] = { _ in [] },
        addingDevelopmentCaller caller: CallerName? = nil, keptIn kept: KeptBundles? = nil
    ) throws(PolicyDiagnostics) -> PolicyBundle {
        let files = try survey(path)
        let digest = files.diagnostics.isEmpty && kept != nil ? files.digest : nil
        if let digest, let bundle = kept?.bundle(of: digest, with: caller) { return bundle }
        let (pages, unreadable, found) = files.parsed()
        let diagnostics = found + refusing(pages)
        guard diagnostics.isEmpty else {
            throw PolicyDiagnostics(diagnostics + PolicyBundle.diagnostics(of: pages, without: unreadable))
        }
        let bundle = try PolicyBundle.read(
            documents: caller.map { DevelopmentCaller.adding($0, to: pages) } ?? pages
        ).get()
        if let digest { kept?.add(bundle, of: digest, with: caller) }
        return bundle
    }

    /// Reads every page of the bundle in a folder, by its path relative to the folder.
    ///
    /// - Parameter path: The bundle's folder; the last step of the path may be a symbolic link.
    /// - Throws: Every problem of every page, sorted by file and line. What the pages say is not looked at.
    package static func read(at path: String) throws(PolicyDiagnostics) -> [String: PolicyNode] {
        let (pages, _, diagnostics) = try survey(path).parsed()
        guard diagnostics.isEmpty else { throw PolicyDiagnostics(diagnostics) }
        return pages
    }

    /// The files of a bundle's folder, and what is wrong with those that could not be read.
    private struct Files {
        var paths: [String]
        var sources: [(path: String, bytes: [UInt8])]
        var diagnostics: [PolicyDiagnostic]

        /// Of every path and byte; each is preceded by its length, so that no two folders share one.
        var digest: SHA256Digest {
            var text: [UInt8] = []
            for (path, bytes) in sources {
                text += "\(path.utf8.count) \(path) \(bytes.count) ".utf8
                text += bytes
            }
            return SHA256.digest(text)
        }

        /// The pages that can be read, the paths of those that cannot, and why.
        func parsed() -> (
            pages: [String: PolicyNode], unreadable: Set<String>, diagnostics: [PolicyDiagnostic]
        ) {
            var diagnostics = diagnostics
            var pages: [String: PolicyNode] = [:]
            pages.reserveCapacity(sources.count)
            for ((path, _), result) in zip(sources, PolicyDirectory.parse(sources)) {
                switch result {
                case .success(let node): pages[path] = node
                case .failure(let found): diagnostics += found.diagnostics
                case nil: preconditionFailure("the page \(path) was not parsed")
                }
            }
            return (pages, Set(paths).subtracting(pages.keys).union(diagnostics.map(\.file)), diagnostics)
        }
    }

    /// - Throws: When the folder is no bundle's.
    private static func survey(_ path: String) throws(PolicyDiagnostics) -> Files {
        var diagnostics: [PolicyDiagnostic] = []
        let folder: BundleFolder
        let found: [String]
        do throws(FolderError) {
            folder = try BundleFolder(at: path)
            found = try files(of: folder, &diagnostics)
        } catch {
            throw PolicyDiagnostics([cannotRead(error)])
        }
        if !found.contains(coverPage) {
            diagnostics.append(
                PolicyDiagnostic(
                    file: coverPage, message: "is missing",
                    hint: "a bundle has a cover page with its name, version and list of files"))
        }
        // A folder that is no bundle, or too much of one, is not read any further.
        guard found.contains(coverPage), found.count <= PolicyFileLimits.fileCountMax else {
            throw PolicyDiagnostics(diagnostics)
        }
        let sources = contents(of: found, in: folder, &diagnostics)
        return Files(paths: found, sources: sources, diagnostics: diagnostics)
    }

    private static func cannotRead(_ error: FolderError) -> PolicyDiagnostic {
        PolicyDiagnostic(
            file: error.path.isEmpty ? coverPage : error.path, message: "cannot be read: \(error.reason)",
            hint: "check that the path is a bundle's folder and that the gateway's user may read it")
    }

    // MARK: What is there

    /// The bundle's files, sorted, without what is there for editors.
    private static func files(
        of folder: BundleFolder, _ diagnostics: inout [PolicyDiagnostic]
    ) throws(FolderError) -> [String] {
        var files: [String] = []
        var waiting: [(path: String, depth: Int)] = [("", 0)]
        while let (path, depth) = waiting.popLast() {
            let left = PolicyFileLimits.fileCountMax - files.count
            for entry in try folder.entries(of: path, countMax: left) {
                switch entry {
                case .file(let file) where PolicySignature.isFile(file): continue
                case .file(let file):
                    guard file.utf8.count <= PolicyFileLimits.pathByteCountMax else {
                        diagnostics.append(
                            PolicyDiagnostic(
                                file: String(file.prefix(64)) + "…",
                                message: "has a path of more than \(PolicyFileLimits.pathByteCountMax) bytes")
                        )
                        continue
                    }
                    files.append(file)
                case .folder(editorFolder) where depth == 0: continue
                case .folder(let inner):
                    guard depth + 1 < PolicyFileLimits.folderDepthMax else {
                        diagnostics.append(
                            PolicyDiagnostic(
                                file: inner,
                                message:
                                    "is a folder more than \(PolicyFileLimits.folderDepthMax) levels down",
                                hint: "a bundle has types/, notices/, messages/, reasons/ and cases/"))
                        continue
                    }
                    waiting.append((inner, depth + 1))
                case .other(let path, let what):
                    diagnostics.append(
                        PolicyDiagnostic(
                            file: path, message: "is \(what), and a bundle holds files only",
                            hint: "put the file itself there"))
                }
            }
            guard files.count <= PolicyFileLimits.fileCountMax, diagnostics.count < 1_000,
                waiting.count <= PolicyFileLimits.fileCountMax
            else {
                diagnostics.append(
                    PolicyDiagnostic(
                        file: coverPage,
                        message: "lies in a folder of more than \(PolicyFileLimits.fileCountMax) files",
                        hint: "check that the path is a bundle's folder"))
                return files
            }
        }
        return files.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    // MARK: The pages

    /// - Returns: Nothing of a bundle that is too long.
    private static func contents(
        of paths: [String], in folder: BundleFolder, _ diagnostics: inout [PolicyDiagnostic]
    ) -> [(path: String, bytes: [UInt8])] {
        var sources: [(path: String, bytes: [UInt8])] = []
        var byteCount = 0
        for path in paths {
            do throws(FolderError) {
                let bytes = try folder.contents(
                    of: path, byteCountMax: PolicyFileLimits.byteCountMax(of: path))
                byteCount += bytes.count
                guard byteCount <= PolicyFileLimits.bundleByteCountMax else {
                    diagnostics.append(
                        PolicyDiagnostic(
                            file: path,
                            message:
                                "makes the bundle longer than \(PolicyFileLimits.bundleByteCountMax) bytes"))
                    return []
                }
                sources.append((path, bytes))
            } catch {
                diagnostics.append(cannotRead(error))
            }
        }
        return sources
    }

    /// Parses on all cores: pages know nothing of each other, and a bundle may have thousands.
    private static func parse(
        _ sources: [(path: String, bytes: [UInt8])]
    ) -> [Result<PolicyNode, PolicyDiagnostics>?] {
        let chunkCount = (sources.count + chunkLength - 1) / chunkLength
        let results = Mutex([Result<PolicyNode, PolicyDiagnostics>?](repeating: nil, count: sources.count))
        DispatchQueue.concurrentPerform(iterations: chunkCount) { chunk in
            let range = chunk * chunkLength..<min((chunk + 1) * chunkLength, sources.count)
            let parsed = range.map { index in
                Result { () throws(PolicyDiagnostics) in
                    try page(sources[index].bytes, path: sources[index].path)
                }
            }
            results.withLock { results in
                for (index, result) in zip(range, parsed) { results[index] = result }
            }
        }
        return results.withLock { $0 }
    }

    /// Pages one thread takes at a time: enough that taking costs nothing beside parsing.
    private static let chunkLength = 32

    private static func page(_ bytes: [UInt8], path: String) throws(PolicyDiagnostics) -> PolicyNode {
        if path.hasSuffix(".yaml") { return try PolicyPage.read(bytes, file: path) }
        if path.hasPrefix("notices/"), path.hasSuffix(".txt") {
            return try PolicyPage.readText(bytes, file: path)
        }
        throw PolicyDiagnostics([
            PolicyDiagnostic(
                file: path, message: "has a name that nothing in a bundle has",
                hint: "pages end in .yaml, notices in notices/ end in .txt; remove what is neither")
        ])
    }
}
