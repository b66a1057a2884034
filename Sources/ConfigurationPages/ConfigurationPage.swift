package import BundleModel
import Glibc
import PolicyPages

/// The file an operator writes, read as strictly as a page of the bundle: no aliases, no repeated keys, and no words that
/// readers of YAML type differently.
package enum ConfigurationPage {
    /// Bytes of a configuration file.
    package static let byteCountMax = 256 * 1024

    /// - Returns: What is wrong inside the file as a failure, to be told together with everything else.
    /// - Throws: When the file cannot be read at all.
    package static func read(
        _ path: String
    ) throws(ConfigurationDiagnostics) -> Result<PolicyNode, ConfigurationDiagnostics> {
        let bytes = try contents(of: path)
        do throws(PolicyDiagnostics) {
            return .success(try PolicyPage.read(bytes, file: path))
        } catch {
            return .failure(
                ConfigurationDiagnostics(
                    error.diagnostics.map { diagnostic in
                        var place = diagnostic.file
                        if let line = diagnostic.line { place += ":\(line)" }
                        if diagnostic.line != nil, let column = diagnostic.column { place += ":\(column)" }
                        return ConfigurationDiagnostic(diagnostic.message, at: place, hint: diagnostic.hint)
                    }))
        }
    }

    /// A configuration says who may do what, so no other user may write it.
    private static func contents(of path: String) throws(ConfigurationDiagnostics) -> [UInt8] {
        func refuse(_ message: String, hint: String) -> ConfigurationDiagnostics {
            ConfigurationDiagnostics([ConfigurationDiagnostic(message, at: path, hint: hint)])
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw refuse(
                "cannot be read: \(String(cString: strerror(errno)))",
                hint: "check the path and that this user may read it")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw refuse("is not a file", hint: "name a YAML file")
        }
        guard status.st_mode & S_IWOTH == 0 else {
            throw refuse("may be written by everybody", hint: "run `chmod o-w \(path)`")
        }
        guard status.st_size <= byteCountMax else {
            throw refuse(
                "has \(status.st_size) bytes, \(byteCountMax) are accepted",
                hint: "check that this is the configuration")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress! + filled, $0.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw refuse("ended early", hint: "try again") }
            filled += count
        }
        return bytes
    }
}
