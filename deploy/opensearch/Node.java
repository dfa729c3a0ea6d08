import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.codelibs.opensearch.runner.node.OpenSearchRunnerNode;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.plugins.Plugin;

/**
 * One OpenSearch node in this process, with the settings of FOLDER/opensearch.yml and the plugins named after it:
 * java Node FOLDER PLUGIN... It ends on SIGTERM, closing its shards, and, where OPENSEARCH_TETHER is set, as soon as
 * its standard input ends: a node that a test started cannot outlive the test, however the test dies.
 */
public final class Node {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]).toAbsolutePath();
        if (System.getenv("OPENSEARCH_TETHER") != null) {
            endWithStandardInput();
        }
        OpenSearchRunnerNode node = new OpenSearchRunnerNode(
            InternalSettingsPreparer.prepareEnvironment(
                Settings.builder().put("path.home", folder.toString()).build(), Map.of(), folder, () -> "node"),
            plugins(List.of(arguments).subList(1, arguments.length)));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
        node.start();
        Thread.currentThread().join();
    }

    private static List<Class<? extends Plugin>> plugins(List<String> names) throws ClassNotFoundException {
        List<Class<? extends Plugin>> found = new ArrayList<>();
        for (String name : names) {
            found.add(Class.forName(name).asSubclass(Plugin.class));
        }
        return found;
    }

    private static void close(OpenSearchRunnerNode node) {
        try {
            node.close();
            node.awaitClose(10, TimeUnit.SECONDS);
        } catch (IOException failed) {
            failed.printStackTrace();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static void endWithStandardInput() {
        Thread watch = new Thread(() -> {
            try {
                System.in.transferTo(java.io.OutputStream.nullOutputStream());
            } catch (IOException gone) {
                // A pipe that breaks has ended as well.
            }
            Runtime.getRuntime().halt(1);
        });
        watch.setDaemon(true);
        watch.start();
    }
}
